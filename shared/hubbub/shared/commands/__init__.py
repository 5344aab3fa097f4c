"""The commands that need nothing but the base install."""
