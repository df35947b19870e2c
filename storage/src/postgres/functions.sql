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

-- Decides a group of batches for one slot and writes those that are not refused. No batch of the group writes a key
-- that a later one names, counters excepted, so all guards are judged by what is stored.
--
-- A refusal is a batch, a kind (1 guard, 2 floor, 3 stale stamp, 4 no counter) and the number of what refused it.
CREATE OR REPLACE FUNCTION mayfly_commit(
    p_slot int8, p_group int4, p_epoch int8, p_synced bool,
    f_batch int4[], f_version int8[],
    g_batch int4[], g_key bytea[], g_version bytea[],
    c_key bytea[],
    a_batch int4[], a_counter int4[], a_stamp bytea[], a_first int8[], a_second int8[],
    p_batch int4[], p_key bytea[], p_value bytea[],
    m_put int4[], m_advance int4[], m_in_key bool[], m_at int4[],
    d_batch int4[], d_key bytea[],
    OUT o_here bool, OUT o_floor int8, OUT o_batch int4[], OUT o_kind int4[], OUT o_number int4[],
    OUT o_counters bytea[]
) LANGUAGE plpgsql AS $$
DECLARE
    s_floor int8;
    s_moving bool;
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
    SELECT t.o_floor, t.o_moving INTO s_floor, s_moving FROM mayfly_take(p_slot, p_group, p_epoch) t;
    o_here := s_floor IS NOT NULL;
    o_batch := '{}';
    o_kind := '{}';
    o_number := '{}';
    o_counters := '{}';
    o_floor := s_floor;
    IF NOT o_here THEN
        PERFORM set_config('synchronous_commit', 'off', true);
        RETURN;
    END IF;
    FOR i IN 1 .. cardinality(f_batch) LOOP
        IF f_version[i] < s_floor THEN
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
                         (SELECT substr(kv.v, 1, 8) FROM mayfly_kv kv WHERE kv.slot = p_slot AND kv.k = g.k) AS found
                  FROM unnest(g_batch, g_key, g_version) WITH ORDINALITY AS g(b, k, want, n)) AS f
            WHERE f.found IS DISTINCT FROM f.want;
    END IF;
    FOR i IN 1 .. cardinality(c_key) LOOP
        c := NULL;
        SELECT kv.v INTO c FROM mayfly_kv kv WHERE kv.slot = p_slot AND kv.k = c_key[i];
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
                p_key[j] := substr(p_key[j], 1, m_at[i]) || c || substr(p_key[j], m_at[i] + 9);
            ELSE
                p_value[j] := substr(p_value[j], 1, m_at[i]) || c || substr(p_value[j], m_at[i] + 9);
            END IF;
        END IF;
    END LOOP;
    IF cardinality(o_batch) > 0 THEN
        SELECT coalesce(array_agg(p.k), '{}'), coalesce(array_agg(p.v), '{}') INTO p_key, p_value
            FROM unnest(p_batch, p_key, p_value) AS p(b, k, v) WHERE NOT p.b = ANY (o_batch);
        SELECT coalesce(array_agg(d.k), '{}') INTO d_key
            FROM unnest(d_batch, d_key) AS d(b, k) WHERE NOT d.b = ANY (o_batch);
    END IF;
    FOR i IN 1 .. cardinality(c_key) LOOP
        IF raised[i] THEN
            p_key := p_key || c_key[i];
            p_value := p_value
                || (mayfly_bytes(seq[i]) || stamp[i] || mayfly_bytes(first[i]) || mayfly_bytes(second[i]));
        END IF;
    END LOOP;
    IF NOT p_synced OR cardinality(d_key) + cardinality(p_key) = 0 THEN
        -- Nobody waits for the disk: what is lost in a crash is done again, or was nothing.
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    IF cardinality(d_key) > 0 THEN
        DELETE FROM mayfly_kv kv WHERE kv.slot = p_slot AND kv.k = ANY (d_key);
    END IF;
    IF cardinality(p_key) > 0 THEN
        INSERT INTO mayfly_kv (slot, k, v)
            SELECT p_slot, p.k, p.v FROM unnest(p_key, p_value) AS p(k, v)
            ON CONFLICT (slot, k) DO UPDATE SET v = excluded.v;
    END IF;
    IF s_moving THEN
        INSERT INTO mayfly_moved (grp, slot, k)
            SELECT p_group, p_slot, u.k FROM unnest(p_key || d_key) AS u(k)
            ON CONFLICT (grp, slot, k) DO NOTHING;
    END IF;
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
