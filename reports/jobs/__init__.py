"""Tables of a report. Each has a schema; most are computed by a short SQL text that every engine runs."""
