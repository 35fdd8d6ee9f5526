"""The embedded judge: a small classifier, trained in the workflow on turns whose label is known by construction."""
