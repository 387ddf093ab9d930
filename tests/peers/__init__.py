"""Real programs that tests talk to: pins, a build script, and what starts them on loopback."""
