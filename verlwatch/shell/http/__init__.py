"""The HTTP side: health, readiness, status for programs, for Prometheus and for people.  It reads; a hub's takes deliveries."""
