"""Files of the project into which a test installs agency: what docs/existing-project.md takes for granted."""
