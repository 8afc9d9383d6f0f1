"""The local engine of the report's jobs."""
