"""Commands about logs: validate, show, convert, schema."""
