"""The Beam pipelines and the ``beam`` command: the only folder that imports apache_beam.

Nothing is decided here.  A pipeline's file is its options and one chain of labelled transforms; what
the transforms do is plain functions of corpus/ and vocab/.
"""
