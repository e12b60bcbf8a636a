"""What a flex template's launcher runs: it wants a file, and what is to be run is in the package."""

import sys

from bioshards.pipelines.templates.launcher import main

sys.exit(main())
