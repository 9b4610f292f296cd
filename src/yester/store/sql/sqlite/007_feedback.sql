-- In which sessions an item was shown is asked for at every question.
CREATE INDEX injection_item ON injection(item);
