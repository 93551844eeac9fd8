"""deepmd_data.py FOLDER: writes small training and validation sets for DeePMD-kit.

The sets are clusters of 13 argon atoms, with the energies and forces of the Lennard-Jones potential.

    python3 configs/gallery/deepmd_data.py deepmd-data          writes deepmd-data/training and deepmd-data/validation

Needs NumPy. Lengths are in Angstrom, energies in eV: epsilon 0.0103, sigma 3.405 (argon).
"""
import pathlib
import sys

import numpy as np

EPSILON, SIGMA, ATOMS = 0.0103, 3.405, 13


def energy_and_forces(places):
    """Returns the energies [frame] and forces [frame, atom, 3] for the atom positions `places` [frame, atom, 3]."""
    apart = places[:, :, None] - places[:, None]
    squared = (apart ** 2).sum(-1) + np.where(np.eye(ATOMS, dtype=bool), np.inf, 0)
    sixth = (SIGMA ** 2 / squared) ** 3
    energy = 2 * EPSILON * (sixth ** 2 - sixth).sum((1, 2))
    forces = ((24 * EPSILON * (2 * sixth ** 2 - sixth) / squared)[..., None] * apart).sum(2)
    return energy, forces


def icosahedron():
    """Returns approximately the cluster with the smallest energy: one atom surrounded by twelve atoms."""
    golden = (1 + 5 ** 0.5) / 2
    corners = [np.roll((0, one, two * golden), turn) for turn in range(3) for one in (-1, 1) for two in (-1, 1)]
    return np.array([(0, 0, 0), *corners]) * 1.08 * SIGMA / (1 + golden ** 2) ** 0.5


def write(folder, frames, generator):
    scales = generator.uniform(0.97, 1.1, (frames, 1, 1))
    places = icosahedron() * scales + generator.normal(0, 0.12, (frames, ATOMS, 3))
    energy, forces = energy_and_forces(places)
    (folder / "set.000").mkdir(parents=True, exist_ok=True)
    (folder / "type.raw").write_text("0\n" * ATOMS)
    (folder / "type_map.raw").write_text("Ar\n")
    (folder / "nopbc").write_text("")
    arrays = {"coord": places, "energy": energy, "force": forces, "box": np.tile(60.0 * np.eye(3), (frames, 1, 1))}
    for name, array in arrays.items():
        np.save(folder / "set.000" / f"{name}.npy", array.reshape(frames, -1))


if len(sys.argv) != 2:
    sys.exit(__doc__)
GENERATOR = np.random.default_rng(1)
write(pathlib.Path(sys.argv[1]) / "training", 240, GENERATOR)
write(pathlib.Path(sys.argv[1]) / "validation", 60, GENERATOR)
