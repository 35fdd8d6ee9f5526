"""Two studies set against each other: which numbers moved, how surely, and what differs in how they were made."""
