"""Part of the stand-in; see the package."""

import os


def get_credential(**_options):
    """The key, where the tests would take an identity of Azure."""
    return os.environ["ACCOUNT_KEY"]
