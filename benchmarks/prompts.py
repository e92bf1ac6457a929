"""Forty prompts of five kinds, from where drafting pays most to where it pays least."""

from specchat.app.compare_prompts import CONFIG, PARSER, TABLE

CART = """\
class Cart:
    def __init__(self):
        self.items = []

    def add(self, name, price, count=1):
        self.items.append((name, price, count))

    def total(self):
        total = 0
        for name, price, count in self.items:
            total += price * count
        return total

    def remove(self, name):
        self.items = [item for item in self.items if item[0] != name]
"""

QUEUE = """\
type Queue struct {
	items []string
}

func (q *Queue) Push(item string) {
	q.items = append(q.items, item)
}

func (q *Queue) Pop() string {
	item := q.items[0]
	q.items = q.items[1:]
	return item
}
"""

PAGE = """\
<ul class="menu">
  <li><a href="/home">Home</a></li>
  <li><a href="/news">News</a></li>
  <li><a href="/shop">Shop</a></li>
  <li><a href="/help">Help</a></li>
  <li><a href="/about">About</a></li>
</ul>
"""

STATS = """\
import math


def mean(values):
    return sum(values) / len(values)


def variance(values):
    middle = mean(values)
    return sum((value - middle) ** 2 for value in values) / len(values)


def deviation(values):
    return math.sqrt(variance(values))


def median(values):
    ordered = sorted(values)
    half = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[half]
    return (ordered[half - 1] + ordered[half]) / 2
"""

FORM = """\
function validate(form) {
  const errors = [];
  if (!form.name) {
    errors.push("Please give your name.");
  }
  if (!form.email.includes("@")) {
    errors.push("Please give a valid address.");
  }
  if (form.password.length < 8) {
    errors.push("The password is too short.");
  }
  return errors;
}
"""

PROMPTS: dict[str, list[str]] = {
    "code": [
        "Write a Python function that merges two sorted lists into one sorted list, with a docstring and tests.",
        "Write a JavaScript class for a least-recently-used cache with get and set.",
        "Write a Python script that counts the words of a text file and prints the twenty most common ones.",
        "Write a C function that reverses a singly linked list in place, and a main function that shows it.",
        "Write a Python class for a binary search tree with insert, contains and an in-order iterator.",
        "Write a Rust function that parses a duration such as 1h30m into seconds, with unit tests.",
        "Write a Go HTTP handler that returns the current time as JSON, and a main function that serves it.",
        "Write a SQL schema for a library with books, members and loans, and three useful queries.",
    ],
    "json": [
        "Give a JSON array of five books, each with title, author, year, isbn, pages and a list of genres.",
        "Write an OpenAPI 3 description in JSON for a service that lists, creates and deletes notes.",
        "Give a JSON object with the seven days of the week, each with an opening time, a closing time and a note.",
        "Write a package.json for a web project with eight dependencies, scripts for build, test and lint.",
        "Give a GeoJSON FeatureCollection with six European capitals, each with name and population.",
        "Write a JSON schema for a customer with name, email, address, phone numbers and birthday.",
        "Give a JSON array with ten countries, each with name, capital, population, area and currency.",
        "Write a JSON configuration for a logging library with four handlers and three formatters.",
    ],
    "edit": [
        f"Add type hints to this code and show all of it, changing nothing else:\n\n```python\n{CART}```",
        f"Rename `people` to `persons` in this code and show all of it:\n\n```python\n{PARSER}```",
        f"Make Pop return an error when the queue is empty, and show the whole code:\n\n```go\n{QUEUE}```",
        f'Give each link the attribute class="link" and show the whole list:\n\n```html\n{PAGE}```',
        f"Change the port of the server to 9090 and show the whole file:\n\n```toml\n{CONFIG}```",
        f"Add a column `note TEXT` at the end of the table and show all of it:\n\n```sql\n{TABLE}```",
        f"Rename `values` to `numbers` everywhere and show the whole file:\n\n```python\n{STATS}```",
        f"Make the shortest password 12 characters and show the code:\n\n```javascript\n{FORM}```",
    ],
    "explanation": [
        "Explain how a hash table works, and what happens when two keys collide.",
        "Explain the difference between a process and a thread to somebody who has just begun to program.",
        "Why is the sky blue during the day and red in the evening? Explain it in two paragraphs.",
        "Explain what a database index is, when it helps, and what it costs.",
        "Explain how a vaccine teaches the immune system, in plain words.",
        "Explain what happens between typing an address into a browser and seeing the page.",
        "Why do the seasons change? Explain it to a child of ten.",
        "Explain the difference between compiled and interpreted languages, with their trade-offs.",
    ],
    "story": [
        "Tell a short story about a lighthouse keeper who finds a letter in a bottle.",
        "Write the beginning of a mystery that is set on a night train through the mountains.",
        "Tell a story about an old robot that learns to paint.",
        "Write a short tale about two friends who open a bakery in a small harbour town.",
        "Tell a story about a girl who can hear what the trees say.",
        "Write the opening of a story about the last librarian of a city under the sea.",
        "Tell a story about a clockmaker whose clocks begin to run backwards.",
        "Write a story about a postman who delivers a letter thirty years late.",
    ],
}
