"""Wrote sentences.txt, once, from the documentation and the comments of this repository:

    python cmd/lab/internal/lab/data/sentences.py > cmd/lab/internal/lab/data/sentences.txt

A sentence has 3 to 20 plain words, in lower case, without marks. Each stands there once.
"""
import re
import subprocess


def comments(text):
    block = []
    for line in text.split("\n"):
        comment = re.match(r"\s*// ?(.*)$", line)
        if comment and not comment[1].startswith(("\t", "go:", "  ")):
            block.append(comment[1])
        elif block:
            yield " ".join(block)
            block = []


def paragraphs(text):
    text = re.sub(r"```.*?```", "\n\n", text, flags=re.S)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    lines = [line for line in text.split("\n") if not line.startswith(("|", "    ", "#"))]
    return re.split(r"\n\s*\n", "\n".join(re.sub(r"^(- |\d+\. )", "\n\n", line) for line in lines))


known = {}
for path in subprocess.check_output(["git", "ls-files", "*.md", "*.go"], text=True).split():
    if "styles/" in path or "testdata" in path:
        continue
    text = open(path, encoding="utf8").read()
    for part in comments(text) if path.endswith(".go") else paragraphs(text):
        part = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", part)
        part = re.sub(r"[*\[\]]", "", " ".join(part.split()))
        for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z])", part):
            words = re.sub(r'[,;:()"]', " ", sentence[:-1]).lower().split()
            plain = all(re.fullmatch(r"[a-z]+(['’-][a-z]+)*", word) for word in words)
            if sentence.endswith((".", "!", "?")) and plain and 3 <= len(words) <= 20:
                known[" ".join(words)] = True
print("\n".join(known))
