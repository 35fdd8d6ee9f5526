"""One module a stage: each reads artefacts, calls the library and writes artefacts, as a job of the workflow."""
