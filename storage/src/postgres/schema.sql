-- What a server of the PostgreSQL family holds for Mayfly. Run once, by the first node that opens the store.
--
-- Plain SQL. The functions that work on it are in `functions.sql`.

CREATE TABLE mayfly_kv (
    slot int8 NOT NULL,
    k bytea NOT NULL,
    v bytea NOT NULL,
    PRIMARY KEY (slot, k)
);

-- The groups of slots that this server holds. One that went elsewhere stays as a row that is not owned.
CREATE TABLE mayfly_group (
    grp int4 PRIMARY KEY,
    epoch int8 NOT NULL,
    owned bool NOT NULL,
    moving bool NOT NULL
);

-- One row for each slot that was ever written. Whoever commits to a slot holds its row until the end of the
-- transaction, so commits to one slot come one after the other, and guards need no locks of their own.
CREATE TABLE mayfly_slot (
    slot int8 PRIMARY KEY,
    grp int4 NOT NULL,
    epoch int8 NOT NULL,
    floor int8 NOT NULL,
    moving bool NOT NULL
);

-- Keys that were written while their group is being copied elsewhere.
CREATE TABLE mayfly_moved (
    grp int4 NOT NULL,
    slot int8 NOT NULL,
    k bytea NOT NULL,
    PRIMARY KEY (grp, slot, k)
);

-- Only used where the catalog is: which server holds which group, and who does the background work of which.
CREATE TABLE mayfly_server (id int4 PRIMARY KEY, url text NOT NULL);
CREATE TABLE mayfly_map (grp int4 PRIMARY KEY, server int4 NOT NULL, epoch int8 NOT NULL);
CREATE TABLE mayfly_lease (grp int4 PRIMARY KEY, owner text NOT NULL, until timestamptz NOT NULL);
CREATE TABLE mayfly_node (name text PRIMARY KEY, until timestamptz NOT NULL);

INSERT INTO mayfly_lease (grp, owner, until) SELECT g, '', clock_timestamp() FROM generate_series(0, $GROUPS) AS g;
INSERT INTO mayfly_group (grp, epoch, owned, moving) SELECT g, 1, $OWNED, false FROM generate_series(0, $GROUPS) AS g;
INSERT INTO mayfly_map (grp, server, epoch) SELECT g, 1, 1 FROM generate_series(0, $GROUPS) AS g;

-- Last: a store that has this row has all the rest.
CREATE TABLE mayfly_schema (version int4 NOT NULL);
INSERT INTO mayfly_schema (version) VALUES ($VERSION);
