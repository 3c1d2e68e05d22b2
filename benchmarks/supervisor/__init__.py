"""How well a model supervises loops: labelled transcripts, the shipped prompt, and a raw baseline."""
