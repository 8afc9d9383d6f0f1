"""Tables of a report beside the verdicts, each with a schema and one short SQL text that every engine runs."""
