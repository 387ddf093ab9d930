"""What is measured in a process of its own: each module is a program that gets its parameters as JSON and prints one JSON result."""
