"""``python -m verlwatch``."""

from verlwatch.cli import main

raise SystemExit(main())
