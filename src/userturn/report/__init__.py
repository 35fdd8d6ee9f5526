"""The page that people read: `build.build_report` turns a study's artefacts into one HTML file."""
