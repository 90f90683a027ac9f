"""One module an engine: how it is run and how its answer is read; `<engine>_job` is the program that is measured."""
