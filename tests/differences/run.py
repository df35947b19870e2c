"""Asks Mayfly and MongoDB the same, and shows where they differ.

    python run.py --mayfly mongodb://… --mongod mongodb://… [--seed N] [--rounds N] [--only KIND] [--codes]

A round is a collection of random documents and the commands on it. Of each difference the smallest case that still shows it is
printed as a file for `kept/`. What is in `kept/` is asked first: the answers there must be the ones that are given, so a difference
that was mended, or that changed, is noticed. What is like one of these (`known.py`) is counted and not shown again.
"""

import argparse
import collections
import copy
import json
import pathlib
import random as random_module
import sys

from bson import SON, json_util
from bson.codec_options import DatetimeConversion
from bson.errors import InvalidBSON
from pymongo import MongoClient
from pymongo.errors import ConnectionFailure

import cases
import known

KEPT = pathlib.Path(__file__).parent / "kept"
# Arguments that a smaller case may do without; the others make the command what it is.
OPTIONAL = {"projection", "skip", "limit", "collation", "fields", "sort", "query", "hint", "let", "ordered"}
READS_PER_ROUND, WRITES_PER_ROUND, BATCHES_PER_ROUND, SHRINK_TRIES = 40, 12, 4, 400


class Pair:
    """Both servers."""

    def __init__(self, mayfly, mongod):
        database = "differences"
        self.servers = [cases.Server(MongoClient(address, document_class=SON, datetime_conversion="DATETIME_AUTO", serverSelectionTimeoutMS=5000), database) for address in (mayfly, mongod)]
        self.close = lambda: [server.database.client.drop_database(database) for server in self.servers]

    def prepare(self, case):
        first, second = (server.prepare(case) for server in self.servers)
        return first == second

    def ask(self, case):
        # Found through an index, documents come in its order, or not: only a sort at the end decides.
        is_ordered = (not case["indexes"] or "sort" in case["command"]) and known.has_order(case["command"])
        answers = [server.answer(case["command"]) for server in self.servers]
        return [cases.shown(answer, is_ordered) for answer, _ in answers], [message for _, message in answers]

    def differ(self, case):
        return not self.prepare(case) or len(set(self.ask(case)[0])) > 1


def smaller(value):
    """Everything that is like a value, but smaller."""
    if isinstance(value, dict):
        for name in value:
            yield SON((n, v) for n, v in value.items() if n != name)
        for name, inner in value.items():
            for less in smaller(inner):
                yield SON((n, less if n == name else v) for n, v in value.items())
    elif isinstance(value, list):
        for place in range(len(value)):
            yield value[:place] + value[place + 1 :]
        for place, inner in enumerate(value):
            for less in smaller(inner):
                yield value[:place] + [less] + value[place + 1 :]


def shrink(pair, case):
    """The same difference with less: the codes of refusals stay what they were."""

    def signature(case):
        if not pair.prepare(case):
            return "prepare"
        answers, _ = pair.ask(case)
        return tuple(answer if answer.startswith('[["error"') or answer.startswith('[["broken"') else "" for answer in answers) \
            if len(set(answers)) > 1 else None

    wanted, tries = signature(case), 0
    while tries < SHRINK_TRIES:
        for name in ("documents", "others", "indexes", "command"):
            found = None
            for less in smaller(case[name]):
                if name in ("documents", "others") and any("_id" not in document for document in less):
                    continue  # Each server would make one of its own.
                if name == "command" and set(case[name]) - set(less) - OPTIONAL:
                    continue
                tries += 1
                trial = {**case, name: less}
                if wanted is not None and signature(trial) == wanted:
                    found = trial
                    break
                if tries >= SHRINK_TRIES:
                    break
            if found:
                case = found
                break
        else:
            break
    return case


def as_file(case, answers, messages, why=""):
    made = SON(why=why, **copy.deepcopy(case), mayfly=answers[0], mongodb=answers[1], messages=messages)
    return json.dumps(json.loads(json_util.dumps(made, json_options=cases.EXACT)), ensure_ascii=False, separators=(",", ": "))


def from_file(path):
    return json_util.loads(path.read_text(), json_options=cases.EXACT.with_options(document_class=SON, datetime_conversion=DatetimeConversion.DATETIME_AUTO))


def kept(pair):
    """The cases that are known: both must answer as it is written there."""
    bad = 0
    files = sorted(KEPT.glob("*.json"))
    for path in files:
        made = from_file(path)
        case = {name: made.get(name, []) for name in ("documents", "others", "indexes", "command")}
        pair.prepare(case)
        answers, _ = pair.ask(case)
        for who, answer in zip(("mayfly", "mongodb"), answers):
            if answer != made[who]:
                bad += 1
                print(f"{path.name}: {who} answers {answer}, not {made[who]}")
    print(f"{len(files)} kept, {bad} changed")
    return bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mayfly", required=True)
    parser.add_argument("--mongod", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--only", choices=["reads", "writes"])
    parser.add_argument("--shown", type=int, default=20, help="differences to make small and show")
    parser.add_argument("--codes", action="store_true", help="two refusals with different codes are a difference")
    chosen = parser.parse_args()
    pair = Pair(chosen.mayfly, chosen.mongod)
    bad = kept(pair)
    asked = refused = other_reason = found = 0
    met = collections.Counter()
    seen = set()
    try:
        for round_number in range(chosen.rounds):
            random = random_module.Random(f"{chosen.seed}/{round_number}")
            collection = {"documents": cases.documents(random), "others": cases.others(random), "indexes": cases.indexes(random)}
            is_ready = False
            for place in range(READS_PER_ROUND + WRITES_PER_ROUND + BATCHES_PER_ROUND):
                is_read, is_batch = place < READS_PER_ROUND, place >= READS_PER_ROUND + WRITES_PER_ROUND
                if is_batch:
                    collection = {"documents": cases.unique_documents(random), "others": [], "indexes": cases.UNIQUE}
                    command = cases.batch_over_unique(random)
                else:
                    command = cases.reads(random) if is_read else cases.writes(random)
                if chosen.only and is_read != (chosen.only == "reads"):
                    continue
                case = {**collection, "command": command}
                if not is_read or not is_ready:
                    pair.prepare(case)
                    is_ready = True
                answers, messages = pair.ask(case)
                asked += 1
                codes = tuple(cases.code_of(answer) for answer in answers)
                refused += codes[1] is not None
                if answers[0] == answers[1] or known.is_ambiguous(command):
                    continue
                like = known.number(case, answers, codes, messages)
                if like is not None:
                    met[like] += 1
                    continue
                # Of two things that are wrong, either may be told. With --codes that counts as a difference too.
                # Which statements of a batch are refused is never a matter of taste.
                if None not in codes and not chosen.codes and not is_batch:
                    other_reason += 1
                    continue
                found += 1
                if len(seen) >= chosen.shown or codes != (None, None) and codes in seen:
                    continue
                small = shrink(pair, case)
                pair.prepare(small)
                text = as_file(small, *pair.ask(small))
                seen.add(text if codes == (None, None) else codes)
                print(f"--- seed {chosen.seed}, round {round_number}, command {place}\n{text}", flush=True)
                is_ready = False
        pair.close()
    except (ConnectionFailure, InvalidBSON) as gone:
        # MongoDB ends itself on some of these commands, and writes what is no BSON on others.
        print(f"seed {chosen.seed}, round {round_number}, command {place}: a server cannot be asked any more: {str(gone)[:100]}")
    print(f"{asked} asked, {refused} refused by MongoDB, {other_reason} of them by us for another reason")
    print("like what is kept: " + ", ".join(f"{number:04} {count} times" for number, count in sorted(met.items())))
    print(f"{asked - found} passed, {found + bad} failed")
    return 1 if found + bad else 0


if __name__ == "__main__":
    sys.exit(main())
