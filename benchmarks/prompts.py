"""Twenty prompts of five kinds, from where drafting pays most to where it pays least."""

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

PARSER = """\
def parse_line(line):
    parts = line.strip().split(",")
    name = parts[0]
    age = int(parts[1])
    city = parts[2]
    return {"name": name, "age": age, "city": city}


def parse_file(path):
    people = []
    with open(path) as file:
        for line in file:
            people.append(parse_line(line))
    return people
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

PROMPTS: dict[str, list[str]] = {
    "code": [
        "Write a Python function that merges two sorted lists into one sorted list, with a docstring and tests.",
        "Write a JavaScript class for a least-recently-used cache with get and set.",
        "Write a Python script that counts the words of a text file and prints the twenty most common ones.",
        "Write a C function that reverses a singly linked list in place, and a main function that shows it.",
    ],
    "json": [
        "Give a JSON array of five books, each with title, author, year, isbn, pages and a list of genres.",
        "Write an OpenAPI 3 description in JSON for a service that lists, creates and deletes notes.",
        "Give a JSON object with the seven days of the week, each with an opening time, a closing time and a note.",
        "Write a package.json for a web project with eight dependencies, scripts for build, test and lint.",
    ],
    "edit": [
        f"Add type hints to this code and show all of it, changing nothing else:\n\n```python\n{CART}```",
        f"Rename `people` to `persons` in this code and show all of it:\n\n```python\n{PARSER}```",
        f"Make Pop return an error when the queue is empty, and show the whole code:\n\n```go\n{QUEUE}```",
        f'Give each link the attribute class="link" and show the whole list:\n\n```html\n{PAGE}```',
    ],
    "explanation": [
        "Explain how a hash table works, and what happens when two keys collide.",
        "Explain the difference between a process and a thread to somebody who has just begun to program.",
        "Why is the sky blue during the day and red in the evening? Explain it in two paragraphs.",
        "Explain what a database index is, when it helps, and what it costs.",
    ],
    "story": [
        "Tell a short story about a lighthouse keeper who finds a letter in a bottle.",
        "Write the beginning of a mystery that is set on a night train through the mountains.",
        "Tell a story about an old robot that learns to paint.",
        "Write a short tale about two friends who open a bakery in a small harbour town.",
    ],
}
