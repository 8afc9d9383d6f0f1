"""What is told of runs beside verdicts: tables with a schema, each from one short SQL text that every engine runs."""
