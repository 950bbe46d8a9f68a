"""The HTTP side: health, readiness, status for programs, for Prometheus and for people; a hub's takes deliveries."""
