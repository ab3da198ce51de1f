"""What commands share: options, reading, outputs, answers."""
