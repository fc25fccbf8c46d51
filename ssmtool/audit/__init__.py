"""What a kernel costs: local memory by path, resources in three tiers of truth, occupancy, budgets."""
