"""The typed configuration of a study: `study` is the whole, the other modules are its sections."""
