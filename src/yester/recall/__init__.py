"""A question into the best answers: candidates, ranking, timeline, staleness."""
