"""The demo's office: a clerk that turns incoming papers into records, and the papers themselves."""
