"""Images of the test set with the guesses of the best network."""


def add_sample(page, run):
    """Adds the images that the seed drew from the test set, right and wrong ones, if best.h5 has them."""
    images = run.best.get("test/sample/images")
    if images is None or not len(images):
        return
    page.heading("A random sample of the test set")
    columns = (run.best[f"test/sample/{name}"] for name in ("index", "truth", "guess", "score"))
    page.pictures(images, [f"#{index}: {run.class_text(truth)}, " + ("recognised" if truth == guess else f"taken for {run.class_text(guess)}") +
                           f" ({100 * score:.0f} %)" for index, truth, guess, score in zip(*columns)])
