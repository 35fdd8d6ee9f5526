"""A language model as a judge: rubric, verdict, grounding, transports, kept answers."""
