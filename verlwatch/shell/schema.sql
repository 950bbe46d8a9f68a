-- Everything that must survive a restart.  A commit touches several of these tables in one transaction, so that the
-- position in a file, what was made of it and what is still to be sent can never disagree.
--
-- JSON columns hold what _rows.py packs: a number that is not finite is written as NaN or Infinity.

-- Where reading of a source resumes; `token` is the file reader's own (inode numbers in it may exceed 63 bits),
-- `history_to` the end of what was there before anybody watched, `seen_at` when the source was last known to exist (to the
-- day): one that has not been seen for long is forgotten.
CREATE TABLE cursor (
    source      TEXT PRIMARY KEY,
    generation  INTEGER NOT NULL,
    reread_from INTEGER NOT NULL,
    applied_to  INTEGER NOT NULL,
    mark        BLOB    NOT NULL,
    token       TEXT    NOT NULL,
    history_to  INTEGER NOT NULL DEFAULT 0,
    seen_at     REAL    NOT NULL DEFAULT 0,
    context     TEXT    NOT NULL DEFAULT ''
);

-- What an agent has read and its hub has not committed yet: JSON of extracts; `samples` of them, and `thinned` left out.
CREATE TABLE shipment (
    number     INTEGER PRIMARY KEY AUTOINCREMENT,
    created_at REAL    NOT NULL,
    samples    INTEGER NOT NULL,
    thinned    INTEGER NOT NULL DEFAULT 0,
    extracts   BLOB    NOT NULL
);
CREATE INDEX shipment_with_samples ON shipment (number) WHERE samples > 0;

-- The life of the table of shipments, one row once it is used.
CREATE TABLE shipping (
    epoch INTEGER NOT NULL
);

-- The core's state; `version` tags the form of `data` (JSON).
CREATE TABLE state (
    kind    TEXT    NOT NULL,
    key     TEXT    NOT NULL,
    version INTEGER NOT NULL,
    data    BLOB    NOT NULL,
    PRIMARY KEY (kind, key)
);

-- The numbers of each step (JSON object), for pages, reports and for recognising a step that is told again.
CREATE TABLE step (
    run     TEXT    NOT NULL,
    attempt INTEGER NOT NULL,
    step    INTEGER NOT NULL,
    at      REAL    NOT NULL,
    data    BLOB    NOT NULL,
    PRIMARY KEY (run, attempt, step)
);
CREATE INDEX step_by_age ON step (at);

-- What happened to incidents, in order (JSON of a Transition).
CREATE TABLE transition (
    id   INTEGER PRIMARY KEY,
    at   REAL NOT NULL,
    data BLOB NOT NULL
);

-- Messages for receivers.  A row stays `pending` until the receiver has said yes (`done`) or a final no (`dead`), a person
-- has `dropped` it, or it was `merged`: the row `part_of` tells of it too.  `attempts` counts the sends that were begun.
CREATE TABLE outbox (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    dedup_key   TEXT    NOT NULL,
    receiver    TEXT    NOT NULL,
    incident    TEXT    NOT NULL,
    reason      TEXT    NOT NULL,
    message     BLOB    NOT NULL,
    created_at  REAL    NOT NULL,
    status      TEXT    NOT NULL DEFAULT 'pending',
    due_at      REAL    NOT NULL,
    attempts    INTEGER NOT NULL DEFAULT 0,
    error       TEXT    NOT NULL DEFAULT '',
    finished_at REAL,
    part_of     INTEGER,
    UNIQUE (dedup_key, receiver)
);
CREATE INDEX outbox_pending ON outbox (receiver, incident, id) WHERE status = 'pending';
CREATE INDEX outbox_by_status ON outbox (receiver, status, created_at);
CREATE INDEX outbox_finished ON outbox (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX outbox_part ON outbox (part_of) WHERE part_of IS NOT NULL;
CREATE INDEX outbox_merged ON outbox (receiver, incident) WHERE part_of IS NOT NULL;

-- What a receiver has noted of an incident, in its channel's own words: a message to edit, an alert to repeat.
CREATE TABLE place (
    receiver TEXT NOT NULL,
    incident TEXT NOT NULL,
    text     TEXT NOT NULL,
    at       REAL NOT NULL,
    PRIMARY KEY (receiver, incident)
);
CREATE INDEX place_by_age ON place (at);

-- Which cards the samples of a host are of: JSON of [index, rank, GiB in all] each; `thinned_to` up to which instant its
-- samples are thinned.
CREATE TABLE gpu_cards (
    id         INTEGER PRIMARY KEY,
    run        TEXT NOT NULL,
    host       TEXT NOT NULL,
    cards      TEXT NOT NULL,
    thinned_to REAL NOT NULL,
    UNIQUE (run, host, cards)
);

-- The cards of a host at one instant, packed (_gpu_samples.py); `cards` is the id of gpu_cards.
CREATE TABLE gpu_sample (
    cards INTEGER NOT NULL,
    at    REAL    NOT NULL,
    data  BLOB    NOT NULL,
    PRIMARY KEY (cards, at)
) WITHOUT ROWID;
CREATE INDEX gpu_sample_by_age ON gpu_sample (at);
