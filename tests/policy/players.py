"""A player for `cmd:`: reads requests as JSON lines; its first word says how it behaves."""

from __future__ import annotations

import json
import os
import sys
import time


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    mood, *rest = sys.argv[1:]
    held = []
    for line in sys.stdin:
        request = json.loads(line)
        number, text = request["id"], request["messages"][-1]["content"]
        answer = {"id": number, "text": f"<think>hm</think>{text}!", "usage": {"in": 3, "out": 1, "cost": 0.5}}
        match mood:
            case "backwards":  # answers two at a time, the later first
                held.append(answer)
                if len(held) == 2:
                    say(json.dumps(held.pop()))
                    say(json.dumps(held.pop()))
                continue
            case "dies" | "hangs" | "babbles" if not os.path.exists(rest[0]):  # once
                open(rest[0], "w").close()
                sys.stderr.write("I go\n")
                if mood == "babbles":
                    say("debug: thinking")
                    time.sleep(60)
                elif mood == "hangs":
                    time.sleep(60)
                sys.exit(3)
            case "stillborn":
                sys.stderr.write("no such weights\n")
                sys.exit(1)
            case "calls":
                answer = {"id": number, "tool_calls": [{"function": {"name": "peek", "arguments": {"jar": 1}}}]}
            case "complains":
                answer = {"id": number, "error": "out of memory"}
            case "empty":
                answer = {"id": number}
            case "shows":
                answer = {"id": number, "text": json.dumps(request, sort_keys=True)}
        say(json.dumps(answer))


if __name__ == "__main__":
    main()
