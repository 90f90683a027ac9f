"""How soon an event is seen: clicks at a steady pace, the stream, and a reader, each in a process of its own."""
