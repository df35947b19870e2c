"""Which of the differences that are kept a new one is like.

Random commands meet the same difference again and again. Each rule here is for one file of `kept/`, named by its number; what no rule
knows is new, and is shown.
"""

import json
import re

from cases import without_order as unordered

WRAPPED = re.compile(r'\[\["", (\{"\$(?:min|max)Key": 1\})\]\]')
LONG = re.compile(r'\{"\$numberLong": "(-?\d+)"\}')


def number(case, answers, codes, messages):
    """The number of the file in `kept/`, or nothing."""
    command, text = case["command"], str(case["command"])
    name = next(iter(command))
    ours, theirs = messages
    only_ours = bool(ours) and not theirs
    pipelines = [one.get("u") for one in command.get("updates", [])] + [command.get("update")]
    # A view adds to what it reads, which may fail too.
    is_filtered = "'$expr'" in text or "'$jsonSchema'" in text and "pattern" in text
    rules = [
        (1, codes[0] is None and "Failed to optimize" in theirs),
        (2, only_ours and any(isinstance(pipeline, list) for pipeline in pipelines)),
        (3, "of a decimal is not supported" in ours),
        (4, re.search(r"'upsert'(: |, )True", text) and re.search(r"'\$(nor|alwaysFalse|jsonSchema)'|'\$in': \[\]", text)),
        (5, only_ours and "regular expression" in ours.lower()),
        (6, "-62198755200001" in str(case) and re.search(r"'\$(date(Add|Subtract|Diff|Trunc|ToString|ToParts)|second|millisecond)'", text)),
        (8, "$sigmoid only supports" in theirs),
        (9, unordered(WRAPPED.sub(r"\1", answers[1]), True) == unordered(WRAPPED.sub(r"\1", answers[0]), True) and WRAPPED.search(answers[1])),
        (10, "'$densify'" in text and '["b", []]' in answers[1]),
        (11, only_ours and "must be greater than 0" in ours),
        (12, (codes[0] is None) != (codes[1] is None) and (is_filtered or "'$redact'" in text)),
        (13, "hint" in command and (codes[1] == "291" or "text" in str(case["indexes"]))),
        (14, "E+61" in str(case) and "NaN" in answers[1]),
        (15, "2.2250738585072e-308" in answers[1]),
        (16, name == "count" and codes[1] == "15958"),
        (17, "multipleOf" in text and "nan" in text),
        (18, only_ours and "arrayFilters" in text),
        (20, name == "distinct" and case["indexes"] and codes == (None, None) and without_null(answers[0]) == without_null(answers[1])),
        (21, "'$densify'" in text and "'bounds': 'full'" in text and "partitionByFields" in text),
        (22, codes == (None, "51246")),
        (23, answers[1].startswith('[["broken"')),
        (24, "MinKey()" in text and "$**" in str(case["indexes"])),
        (25, "$setOnInsert" in text and codes == (None, "2")),
        (26, "'$stdDevPop'" in text and "'$setWindowFields'" in text and codes == (None, None)),
        (27, unordered(answers[0]) == unordered(answers[1])),
        (28, "'$covariance" in text and codes == (None, None)),
        (29, codes == (None, "167")),
        (30, "'$push'" in text and re.sub(r'"nModified", \d', "", answers[0]) == re.sub(r'"nModified", \d', "", answers[1])),
        (31, "'$merge'" in text and LONG.sub(r"\1", answers[1]) == LONG.sub(r"\1", answers[0])),
        (32, re.search(r"'\$(top|bottom)N?'", text) and codes == (None, None)),
        (33, "'$dateDiff'" in text and only_ours),
    ]
    return next((number for number, fits in rules if fits), None)


def without_null(text):
    """The distinct values of an answer but for null."""
    [[_, values]] = json.loads(text)
    return [value for value in values["array"] if value is not None]


def has_order(command):
    """Whether a pipeline says in which order its results come."""
    if "distinct" in command:
        return False
    loses, repeats = {"$group", "$sortByCount", "$setWindowFields", "$lookup"}, {"$unionWith", "$unwind", "$densify"}
    names = [next(iter(stage), None) for stage in command.get("pipeline", [])]
    ordered = not repeats & set(names)
    for name in names:
        ordered = name == "$sort" or ordered and name not in loses
    return ordered


def is_ambiguous(command):
    """Whether a pipeline cuts where equals may stand in any order, or makes lists in it."""
    names = [next(iter(stage), None) for stage in command.get("pipeline", [])]
    repeating = [place for place, name in enumerate(names) if name in ("$unionWith", "$unwind", "$densify")]
    return any(name in ("$limit", "$skip", "$group", "$setWindowFields", "$bucketAuto") for name in names[repeating[0] :]) if repeating else False
