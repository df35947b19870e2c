-- What a server of the PostgreSQL family does for Mayfly. Run whenever the version of these tables and functions goes up.
--
-- Plain PL/pgSQL: no advisory locks, no transaction numbers, no extensions. What a port to another member of the family
-- may have to touch stands in the two small functions at the top.

CREATE OR REPLACE FUNCTION mayfly_number(b bytea) RETURNS int8 LANGUAGE sql IMMUTABLE AS
$$ SELECT ('x' || encode(b, 'hex'))::bit(64)::int8 $$;

CREATE OR REPLACE FUNCTION mayfly_bytes(n int8) RETURNS bytea LANGUAGE sql IMMUTABLE AS
$$ SELECT decode(lpad(to_hex(n), 16, '0'), 'hex') $$;

-- Takes a slot for the rest of the transaction. Its floor; nothing if the slot is not here, or not under this epoch.
CREATE OR REPLACE FUNCTION mayfly_take(p_slot int8, p_group int4, p_epoch int8, OUT o_floor int8, OUT o_moving bool)
LANGUAGE plpgsql AS $$
DECLARE
    s_epoch int8;
BEGIN
    SELECT s.epoch, s.floor, s.moving INTO s_epoch, o_floor, o_moving
        FROM mayfly_slot s WHERE s.slot = p_slot FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO mayfly_slot (slot, grp, epoch, floor, moving)
            SELECT p_slot, p_group, g.epoch, 0, g.moving
            FROM mayfly_group g WHERE g.grp = p_group AND g.owned FOR SHARE
            ON CONFLICT (slot) DO NOTHING;
        SELECT s.epoch, s.floor, s.moving INTO s_epoch, o_floor, o_moving
            FROM mayfly_slot s WHERE s.slot = p_slot FOR UPDATE;
    END IF;
    IF s_epoch IS DISTINCT FROM p_epoch THEN
        o_floor := NULL;
    END IF;
END $$;

-- Decides a group of batches and writes those that are not refused. Each batch is of one slot; the slots are told in
-- ascending order, so that groups that meet wait for each other in one direction. No batch of the group writes a key that
-- a later one names, counters excepted, so all guards are judged by what is stored. A put is fresh if nothing is expected at
-- its key; the expectation may be wrong.
--
-- A refusal is a batch, a kind (0 its slot is not taken, 1 guard, 2 floor, 3 stale stamp, 4 no counter) and the number of
-- what refused it. A slot's state is 0 if it was taken, 1 if it is not here under this epoch, 2 if it has to be asked for
-- alone: it was never written to.
CREATE OR REPLACE FUNCTION mayfly_commit(
    p_slot int8[], p_group int4[], p_epoch int8[], p_synced bool,
    b_slot int4[],
    f_batch int4[], f_version int8[],
    g_batch int4[], g_key bytea[], g_version bytea[],
    c_slot int8[], c_key bytea[],
    a_batch int4[], a_counter int4[], a_stamp bytea[], a_first int8[], a_second int8[],
    p_batch int4[], p_key bytea[], p_value bytea[], p_fresh bool[],
    m_put int4[], m_advance int4[], m_in_key bool[], m_at int4[],
    d_batch int4[], d_key bytea[],
    OUT o_state int4[], OUT o_floor int8[], OUT o_batch int4[], OUT o_kind int4[], OUT o_number int4[],
    OUT o_counters bytea[]
) LANGUAGE plpgsql AS $$
DECLARE
    r record;
    is_moving bool := false;
    is_missing bool := false;
    is_found bool;
    c bytea;
    seq int8[] := '{}';
    stamp bytea[] := '{}';
    first int8[] := '{}';
    second int8[] := '{}';
    mark bytea[] := '{}';
    raised bool[] := '{}';
    i int4;
    j int4;
BEGIN
    o_batch := '{}';
    o_kind := '{}';
    o_number := '{}';
    o_counters := '{}';
    IF cardinality(p_slot) = 1 THEN
        SELECT t.o_floor, t.o_moving INTO r FROM mayfly_take(p_slot[1], p_group[1], p_epoch[1]) t;
        o_floor := ARRAY[r.o_floor];
        o_state := ARRAY[CASE WHEN r.o_floor IS NULL THEN 1 ELSE 0 END];
        is_missing := r.o_floor IS NULL;
        is_moving := coalesce(r.o_moving, false);
    ELSE
        o_floor := array_fill(NULL::int8, ARRAY[cardinality(p_slot)]);
        o_state := array_fill(2, ARRAY[cardinality(p_slot)]);
        i := 1;
        FOR r IN SELECT s.slot, s.epoch, s.floor, s.moving FROM mayfly_slot s
                 WHERE s.slot = ANY (p_slot) ORDER BY s.slot FOR UPDATE LOOP
            WHILE p_slot[i] < r.slot LOOP
                i := i + 1;
            END LOOP;
            IF r.epoch = p_epoch[i] THEN
                o_state[i] := 0;
                o_floor[i] := r.floor;
                is_moving := is_moving OR r.moving;
            ELSE
                o_state[i] := 1;
            END IF;
        END LOOP;
        is_missing := NOT 0 = ALL (o_state);
    END IF;
    IF is_missing THEN
        FOR i IN 1 .. cardinality(b_slot) LOOP
            IF o_state[b_slot[i]] <> 0 THEN
                o_batch := o_batch || i;
                o_kind := o_kind || 0;
                o_number := o_number || 0;
            END IF;
        END LOOP;
    END IF;
    FOR i IN 1 .. cardinality(f_batch) LOOP
        IF f_version[i] < o_floor[b_slot[f_batch[i]]] THEN
            o_batch := o_batch || f_batch[i];
            o_kind := o_kind || 2;
            o_number := o_number || i;
        END IF;
    END LOOP;
    IF cardinality(g_batch) > 0 THEN
        -- One look by the primary key for each guard. As a join, a plan from when the table was small would walk the slot.
        SELECT o_batch || coalesce(array_agg(f.b), '{}'), o_kind || coalesce(array_agg(1), '{}'),
               o_number || coalesce(array_agg(f.n::int4), '{}')
            INTO o_batch, o_kind, o_number
            FROM (SELECT g.b, g.want, g.n,
                         (SELECT substr(kv.v, 1, 8) FROM mayfly_kv kv
                          WHERE kv.slot = p_slot[b_slot[g.b]] AND kv.k = g.k) AS found
                  FROM unnest(g_batch, g_key, g_version) WITH ORDINALITY AS g(b, k, want, n)) AS f
            WHERE f.found IS DISTINCT FROM f.want;
    END IF;
    FOR i IN 1 .. cardinality(c_key) LOOP
        c := NULL;
        SELECT kv.v INTO c FROM mayfly_kv kv WHERE kv.slot = c_slot[i] AND kv.k = c_key[i];
        o_counters[i] := coalesce(c, '');
        IF length(c) = 32 THEN
            seq[i] := mayfly_number(substr(c, 1, 8));
            stamp[i] := substr(c, 9, 8);
            first[i] := mayfly_number(substr(c, 17, 8));
            second[i] := mayfly_number(substr(c, 25, 8));
        ELSE
            -- Nothing there is zero; anything else is no counter.
            seq[i] := CASE WHEN c IS NULL THEN 0 END;
            stamp[i] := decode('0000000000000000', 'hex');
            first[i] := 0;
            second[i] := 0;
        END IF;
        raised[i] := false;
    END LOOP;
    FOR i IN 1 .. cardinality(a_batch) LOOP
        j := a_counter[i];
        IF seq[j] IS NULL OR stamp[j] > a_stamp[i] THEN
            o_batch := o_batch || a_batch[i];
            o_kind := o_kind || CASE WHEN seq[j] IS NULL THEN 4 ELSE 3 END;
            o_number := o_number || i;
        END IF;
    END LOOP;
    FOR i IN 1 .. cardinality(a_batch) LOOP
        IF NOT a_batch[i] = ANY (o_batch) THEN
            j := a_counter[i];
            seq[j] := seq[j] + 1;
            stamp[j] := a_stamp[i];
            first[j] := first[j] + a_first[i];
            second[j] := second[j] + a_second[i];
            raised[j] := true;
            mark[i] := mayfly_bytes(seq[j]);
        END IF;
    END LOOP;
    FOR i IN 1 .. cardinality(m_put) LOOP
        c := mark[m_advance[i]];
        IF c IS NOT NULL THEN
            j := m_put[i];
            IF m_in_key[i] THEN
                p_key[j] := overlay(p_key[j] PLACING c FROM m_at[i] + 1);
            ELSE
                p_value[j] := overlay(p_value[j] PLACING c FROM m_at[i] + 1);
            END IF;
        END IF;
    END LOOP;
    IF cardinality(o_batch) > 0 THEN
        SELECT coalesce(array_agg(p.b), '{}'), coalesce(array_agg(p.k), '{}'), coalesce(array_agg(p.v), '{}'),
               coalesce(array_agg(p.fresh), '{}')
            INTO p_batch, p_key, p_value, p_fresh
            FROM unnest(p_batch, p_key, p_value, p_fresh) AS p(b, k, v, fresh) WHERE NOT p.b = ANY (o_batch);
        SELECT coalesce(array_agg(d.b), '{}'), coalesce(array_agg(d.k), '{}') INTO d_batch, d_key
            FROM unnest(d_batch, d_key) AS d(b, k) WHERE NOT d.b = ANY (o_batch);
    END IF;
    IF NOT p_synced OR p_synced AND cardinality(d_key) + cardinality(p_key) = 0 AND NOT true = ANY (raised) THEN
        -- Nobody waits for the disk: what is lost in a crash is done again, or was nothing. In a transaction of several
        -- calls, where `p_synced` is null, another may have written.
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    IF cardinality(d_key) > 0 THEN
        -- Slot by slot: as a join, a plan from when the table was small would walk all of them.
        FOR r IN SELECT p_slot[b_slot[d.b]] AS slot, array_agg(d.k) AS keys
                 FROM unnest(d_batch, d_key) AS d(b, k) GROUP BY 1 LOOP
            DELETE FROM mayfly_kv kv WHERE kv.slot = r.slot AND kv.k = ANY (r.keys);
        END LOOP;
    END IF;
    is_found := false = ANY (p_fresh);
    IF true = ANY (p_fresh) THEN
        -- To look for what is not there costs as much as half of writing it.
        BEGIN
            INSERT INTO mayfly_kv (slot, k, v)
                SELECT p_slot[b_slot[p.b]], p.k, p.v FROM unnest(p_batch, p_key, p_value, p_fresh) AS p(b, k, v, fresh)
                WHERE p.fresh;
        EXCEPTION WHEN unique_violation THEN
            p_fresh := array_fill(false, ARRAY[cardinality(p_fresh)]);
            is_found := true;
        END;
    END IF;
    IF is_found THEN
        INSERT INTO mayfly_kv (slot, k, v)
            SELECT p_slot[b_slot[p.b]], p.k, p.v FROM unnest(p_batch, p_key, p_value, p_fresh) AS p(b, k, v, fresh)
            WHERE NOT p.fresh
            ON CONFLICT (slot, k) DO UPDATE SET v = excluded.v;
    END IF;
    IF true = ANY (raised) THEN
        INSERT INTO mayfly_kv (slot, k, v)
            SELECT c.slot, c.k, mayfly_bytes(c.s) || c.t || mayfly_bytes(c.f) || mayfly_bytes(c.g)
            FROM unnest(c_slot, c_key, seq, stamp, first, second, raised) AS c(slot, k, s, t, f, g, raised)
            WHERE c.raised
            ON CONFLICT (slot, k) DO UPDATE SET v = excluded.v;
    END IF;
    IF is_moving THEN
        INSERT INTO mayfly_moved (grp, slot, k)
            SELECT s.grp, s.slot, u.k
            FROM (SELECT p_slot[b_slot[p.b]] AS slot, p.k FROM unnest(p_batch, p_key) AS p(b, k)
                  UNION ALL SELECT p_slot[b_slot[d.b]], d.k FROM unnest(d_batch, d_key) AS d(b, k)
                  UNION ALL SELECT c.slot, c.k FROM unnest(c_slot, c_key, raised) AS c(slot, k, raised) WHERE c.raised
                 ) AS u
            JOIN mayfly_slot s ON s.slot = u.slot AND s.moving
            ON CONFLICT (grp, slot, k) DO NOTHING;
    END IF;
END $$;

-- Removes rows of known versions and what goes along with them: the first half of what `mayfly_commit` would do with a
-- batch that does little else, in one look at each row. Whether it was done: otherwise the transaction is to be given up,
-- and `mayfly_commit` to be asked. So it is if the group of the slot is being copied elsewhere, as that one knows how to
-- write down what was changed.
--
-- The slot is not taken yet, so that other commits go on meanwhile. Who has it may wait for one of these rows while this
-- transaction waits for the slot: it gives up after `p_wait`.
--
-- `r_key` is in ascending order, without repeats.
CREATE OR REPLACE FUNCTION mayfly_remove(
    p_slot int8, p_epoch int8, p_wait text, f_version int8[], r_key bytea[], r_version bytea[], d_key bytea[]
) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
    found bytea[];
BEGIN
    -- As it seems: nothing is begun in vain. `mayfly_removed` looks again.
    IF NOT EXISTS (SELECT 1 FROM mayfly_slot s
                   WHERE s.slot = p_slot AND s.epoch = p_epoch AND NOT s.moving AND NOT s.floor > ANY (f_version)) THEN
        RETURN false;
    END IF;
    -- Nobody waits for the disk: what is lost in a crash is done again.
    PERFORM set_config('lock_timeout', p_wait, true), set_config('synchronous_commit', 'off', true);
    WITH gone AS (DELETE FROM mayfly_kv kv WHERE kv.slot = p_slot AND kv.k = ANY (r_key)
                  RETURNING kv.k, substr(kv.v, 1, 8) AS version)
        SELECT array_agg(gone.version ORDER BY gone.k) INTO found FROM gone;
    IF found IS DISTINCT FROM r_version THEN
        RETURN false;
    END IF;
    IF cardinality(d_key) > 0 THEN
        DELETE FROM mayfly_kv kv WHERE kv.slot = p_slot AND kv.k = ANY (d_key);
    END IF;
    RETURN true;
END $$;

-- The second half: takes the slot, judges the other guards, writes the rest and raises `c_key`, a counter, if it is one. If
-- not done, the transaction is to be given up.
CREATE OR REPLACE FUNCTION mayfly_removed(
    p_slot int8, p_group int4, p_epoch int8,
    f_version int8[], g_key bytea[], g_version bytea[],
    c_key bytea, c_first int8, c_second int8,
    p_key bytea[], p_value bytea[],
    OUT o_done bool, OUT o_floor int8, OUT o_counter bytea
) LANGUAGE plpgsql AS $$
DECLARE
    is_moving bool;
    c bytea;
BEGIN
    o_done := false;
    SELECT t.o_floor, t.o_moving INTO o_floor, is_moving FROM mayfly_take(p_slot, p_group, p_epoch) t;
    IF o_floor IS NULL OR is_moving OR o_floor > ANY (f_version) THEN
        RETURN;
    END IF;
    IF EXISTS (SELECT 1 FROM unnest(g_key, g_version) AS g(k, want)
               WHERE (SELECT substr(kv.v, 1, 8) FROM mayfly_kv kv WHERE kv.slot = p_slot AND kv.k = g.k)
                   IS DISTINCT FROM g.want) THEN
        RETURN;
    END IF;
    IF c_key IS NOT NULL THEN
        SELECT kv.v INTO c FROM mayfly_kv kv WHERE kv.slot = p_slot AND kv.k = c_key;
        c := coalesce(c, decode(repeat('00', 32), 'hex'));
        -- No counter, or one with a stamp, which this does not know how to judge.
        IF length(c) <> 32 OR substr(c, 9, 8) <> decode(repeat('00', 8), 'hex') THEN
            RETURN;
        END IF;
        o_counter := mayfly_bytes(mayfly_number(substr(c, 1, 8)) + 1) || substr(c, 9, 8)
            || mayfly_bytes(mayfly_number(substr(c, 17, 8)) + c_first)
            || mayfly_bytes(mayfly_number(substr(c, 25, 8)) + c_second);
        p_key := p_key || c_key;
        p_value := p_value || o_counter;
    END IF;
    INSERT INTO mayfly_kv (slot, k, v) SELECT p_slot, p.k, p.v FROM unnest(p_key, p_value) AS p(k, v)
        ON CONFLICT (slot, k) DO UPDATE SET v = excluded.v;
    o_done := true;
END $$;

-- Removes up to p_limit keys of a range; all of them, or those whose value begins with p_lead and a number of at most
-- p_through. The last key that was looked at, and whether there may be more behind it.
CREATE OR REPLACE FUNCTION mayfly_clear(
    p_slot int8, p_group int4, p_epoch int8, p_start bytea, p_end bytea, p_limit int8, p_lead bytea, p_through bytea,
    OUT o_here bool, OUT o_keys int8, OUT o_last bytea, OUT o_more bool
) LANGUAGE plpgsql AS $$
DECLARE
    s_floor int8;
    s_moving bool;
    looked bytea[];
    gone bytea[];
BEGIN
    SELECT t.o_floor, t.o_moving INTO s_floor, s_moving FROM mayfly_take(p_slot, p_group, p_epoch) t;
    o_here := s_floor IS NOT NULL;
    o_keys := 0;
    o_more := false;
    IF NOT o_here THEN
        RETURN;
    END IF;
    SELECT coalesce(array_agg(f.k ORDER BY f.k), '{}'),
           coalesce(array_agg(f.k) FILTER (WHERE p_lead IS NULL
               OR (substr(f.v, 1, 1) = p_lead AND length(f.v) >= 9 AND substr(f.v, 2, 8) <= p_through)), '{}')
        INTO looked, gone
        FROM (SELECT kv.k, substr(kv.v, 1, 9) AS v FROM mayfly_kv kv
              WHERE kv.slot = p_slot AND kv.k >= p_start AND kv.k < p_end ORDER BY kv.k LIMIT p_limit) AS f;
    o_last := looked[cardinality(looked)];
    o_keys := cardinality(gone);
    IF cardinality(gone) > 0 THEN
        DELETE FROM mayfly_kv kv WHERE kv.slot = p_slot AND kv.k = ANY (gone);
    END IF;
    IF cardinality(looked) = p_limit THEN
        o_more := EXISTS (SELECT 1 FROM mayfly_kv kv
                          WHERE kv.slot = p_slot AND kv.k > o_last AND kv.k < p_end);
    END IF;
    IF s_moving THEN
        INSERT INTO mayfly_moved (grp, slot, k) SELECT p_group, p_slot, u.k FROM unnest(gone) AS u(k)
            ON CONFLICT (grp, slot, k) DO NOTHING;
    END IF;
END $$;

-- Raises the floor of slots: no batch that relies on a version below it is taken any more. Those that are not here.
CREATE OR REPLACE FUNCTION mayfly_raise(p_slot int8[], p_group int4[], p_epoch int8[], p_floor int8) RETURNS bool
LANGUAGE plpgsql AS $$
DECLARE
    i int4;
    s_floor int8;
BEGIN
    FOR i IN 1 .. cardinality(p_slot) LOOP
        SELECT t.o_floor INTO s_floor FROM mayfly_take(p_slot[i], p_group[i], p_epoch[i]) t;
        IF s_floor IS NULL THEN
            RETURN false;
        END IF;
        UPDATE mayfly_slot SET floor = p_floor WHERE slot = p_slot[i] AND floor < p_floor;
    END LOOP;
    RETURN true;
END $$;

-- Half a minute of the background work of a fair part of the groups. Those that the node has now.
CREATE OR REPLACE FUNCTION mayfly_tend(p_node text) RETURNS int4[] LANGUAGE plpgsql AS $$
DECLARE
    now timestamptz := clock_timestamp();
    nodes int4;
    wanted int4;
    has int4;
BEGIN
    INSERT INTO mayfly_node (name, until) VALUES (p_node, now + interval '30 seconds')
        ON CONFLICT (name) DO UPDATE SET until = excluded.until;
    DELETE FROM mayfly_node WHERE until < now - interval '1 hour';
    SELECT count(*) INTO nodes FROM mayfly_node WHERE until > now;
    SELECT (count(*) + nodes - 1) / nodes INTO wanted FROM mayfly_lease;
    UPDATE mayfly_lease SET until = now + interval '30 seconds' WHERE owner = p_node AND until > now;
    SELECT count(*) INTO has FROM mayfly_lease WHERE owner = p_node AND until > now;
    IF has > wanted THEN
        UPDATE mayfly_lease SET owner = '', until = now WHERE grp IN (
            SELECT grp FROM mayfly_lease WHERE owner = p_node ORDER BY grp LIMIT has - wanted);
    ELSIF has < wanted THEN
        UPDATE mayfly_lease SET owner = p_node, until = now + interval '30 seconds' WHERE grp IN (
            SELECT grp FROM mayfly_lease WHERE until <= now ORDER BY until, grp LIMIT wanted - has
            FOR UPDATE SKIP LOCKED);
    END IF;
    RETURN coalesce((SELECT array_agg(grp) FROM mayfly_lease WHERE owner = p_node AND until > now), '{}');
END $$;
