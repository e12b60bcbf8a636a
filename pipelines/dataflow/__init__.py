"""Running on Dataflow: settings, the workers' package, the state of jobs."""
