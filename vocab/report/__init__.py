"""The report on a vocabulary: fertility, reachability, published baselines."""
