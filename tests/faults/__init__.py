"""What goes wrong between the API server and us, and what targets become of it."""
