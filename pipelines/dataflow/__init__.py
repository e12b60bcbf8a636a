"""Running on Dataflow: settings, the wheel for workers, the state of jobs."""
