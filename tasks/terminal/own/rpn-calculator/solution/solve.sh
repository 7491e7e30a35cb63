#!/bin/bash
set -e
cat > /app/rpn.py <<'PYTHON'
import re
import sys
from fractions import Fraction

NUMBER = re.compile(r"-?[0-9]+(?:/[0-9]+)?")
BUILT_IN = {"+": 2, "-": 2, "*": 2, "/": 2, "^": 2, "dup": 1, "swap": 2, "drop": 1}


class Mistake(Exception):
    pass


def number(word):
    if NUMBER.fullmatch(word) and not re.fullmatch(r".*/0+", word):
        return Fraction(word)
    return None


def applied(word, stack):
    if len(stack) < BUILT_IN[word]:
        raise Mistake("underflow")
    right = stack.pop()
    if word == "drop":
        return
    if word == "dup":
        stack += [right, right]
        return
    left = stack.pop()
    if word == "swap":
        stack += [right, left]
    elif word == "^":
        if right.denominator != 1:
            raise Mistake("exponent")
        if left == 0 and right < 0:
            raise Mistake("zero")
        stack.append(Fraction(left ** right.numerator))
    elif word == "/":
        if right == 0:
            raise Mistake("zero")
        stack.append(left / right)
    else:
        stack.append({"+": left + right, "-": left - right, "*": left * right}[word])


def compiled(word, words, mistake):
    if word in words:
        return words[word]
    value = number(word)
    if value is not None:
        return [value]
    if word in BUILT_IN:
        return [word]
    raise Mistake(mistake)


def calculated(line, words):
    stack, rest = [], line.split()
    while rest:
        word = rest.pop(0)
        if word == ":":
            if ";" not in rest:
                raise Mistake("definition")
            end = rest.index(";")
            body, rest = rest[:end], rest[end + 1 :]
            if not body or not re.fullmatch("[A-Za-z]+", body[0]):
                raise Mistake("definition")
            words[body[0]] = [step for each in body[1:] for step in compiled(each, words, "definition")]
            continue
        for step in compiled(word, words, "word"):
            if isinstance(step, str):
                applied(step, stack)
            else:
                stack.append(step)
    return " ".join(map(str, stack))


words = {}
for line in sys.stdin:
    try:
        print(calculated(line, words))
    except Mistake as mistake:
        print(f"error: {mistake}")
PYTHON
