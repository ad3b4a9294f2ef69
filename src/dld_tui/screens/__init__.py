"""One full view each: layout and wiring of messages."""
