"""A real desktop: an X display, a window manager and Debian's applications in a sandbox of their own."""
