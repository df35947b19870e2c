"""Stands in for helpers of the SDK's repository that are not published; its tests import two of them."""
