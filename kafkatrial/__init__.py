"""kafkatrial puts Kafka brokers on trial: the front door (command line, pytest plugin, control interface)."""
