"""Studies of texts that no model wrote, to see how the workflow fares at full size: all that they say is SIMULATED."""
