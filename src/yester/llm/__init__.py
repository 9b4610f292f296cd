"""Language models: what they are asked, what is believed of their answers, what they may cost.

Everything here has an answer of its own without a model, too: none is set unless config.toml does.
"""
