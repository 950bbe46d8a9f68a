"""The HTTP side: health, readiness, status for programs, for Prometheus and for people.  It only ever reads."""
