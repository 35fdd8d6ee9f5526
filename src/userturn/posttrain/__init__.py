"""Post-training: what a variant is trained on, how, and how its weights become an ordinary model folder."""
