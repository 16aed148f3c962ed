"""What the commands that explain print: text for people, from the data that JSON and YAML show."""
